-- q11: the bids of each bidder in each session; 10 seconds without a bid end it.
CREATE MATERIALIZED VIEW q11 AS
SELECT bidder, count(*) AS bid_count, window_start, window_end
FROM SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND)
GROUP BY bidder, window_start, window_end;
