-- q18: the last bid of each bidder on each auction.
CREATE MATERIALIZED VIEW q18 AS
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid
) AS bids
WHERE place <= 1;
