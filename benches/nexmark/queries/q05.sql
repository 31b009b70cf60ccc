-- q5: in each window of 10 seconds, every 2 seconds: the auctions with the most bids.
CREATE MATERIALIZED VIEW q5 AS
WITH counted AS (
  SELECT auction, count(*) AS num, window_start, window_end
  FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
  GROUP BY auction, window_start, window_end
)
SELECT c.auction, c.num, c.window_start, c.window_end
FROM counted AS c
JOIN (SELECT max(num) AS num_max, window_start, window_end FROM counted GROUP BY window_start, window_end) AS most
ON c.window_start = most.window_start AND c.window_end = most.window_end AND c.num >= most.num_max;
