-- q7: the highest bids of each window of 10 seconds. As published, BETWEEN takes both ends.
CREATE MATERIALIZED VIEW q7 AS
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid AS b
JOIN (
  SELECT max(price) AS price_max, window_end
  FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND)
  GROUP BY window_start, window_end
) AS highest
ON b.price = highest.price_max
WHERE b.date_time BETWEEN highest.window_end - INTERVAL '10' SECOND AND highest.window_end;
