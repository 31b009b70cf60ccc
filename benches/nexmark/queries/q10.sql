-- q10: every bid with the day and the minute it belongs to.
--
-- Form: a view. The published text writes files partitioned by these two columns; there is no file sink.
CREATE MATERIALIZED VIEW q10 AS
SELECT auction, bidder, price, date_time, extra, CAST(date_time AS DATE) AS dt, to_char(date_time, 'HH24:MI') AS hm
FROM bid;
