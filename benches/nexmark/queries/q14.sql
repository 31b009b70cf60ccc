-- q14: a calculation over bids in a range of prices. Counting a letter is written with replace, not with a user function.
CREATE MATERIALIZED VIEW q14 AS
SELECT auction, bidder, 0.908 * price AS price,
  CASE WHEN extract(HOUR FROM date_time) BETWEEN 8 AND 18 THEN 'dayTime'
       WHEN extract(HOUR FROM date_time) <= 6 OR extract(HOUR FROM date_time) >= 20 THEN 'nightTime'
       ELSE 'otherTime' END AS bid_time_type,
  date_time, extra, char_length(extra) - char_length(replace(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;
