-- q17: the statistics of each auction and day. The average is cut to a whole number, as the engine of the stored answer does.
CREATE MATERIALIZED VIEW q17 AS
SELECT auction, CAST(date_time AS DATE) AS dt,
  count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  min(price) AS min_price, max(price) AS max_price, CAST(floor(avg(price)) AS BIGINT) AS avg_price,
  sum(price) AS sum_price
FROM bid
GROUP BY auction, CAST(date_time AS DATE);
