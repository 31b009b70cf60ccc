-- q5: in each window of 10 seconds, every 2 seconds: the auctions with the most bids.
CREATE MATERIALIZED VIEW q5 AS
SELECT counted.auction, counted.num, counted.window_start, counted.window_end
FROM (
  SELECT auction, count(*) AS num, window_start, window_end
  FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
  GROUP BY auction, window_start, window_end
) AS counted
JOIN (
  SELECT max(num) AS num_max, window_start, window_end
  FROM (
    SELECT auction, count(*) AS num, window_start, window_end
    FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
    GROUP BY auction, window_start, window_end
  ) AS again
  GROUP BY window_start, window_end
) AS most
ON counted.window_start = most.window_start AND counted.window_end = most.window_end AND counted.num >= most.num_max;
