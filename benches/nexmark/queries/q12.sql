-- q12: the bids of each bidder in each window of 10 seconds, by event time, so that there is one answer.
CREATE MATERIALIZED VIEW q12 AS
SELECT bidder, count(*) AS bid_count, window_start, window_end
FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND)
GROUP BY bidder, window_start, window_end;
