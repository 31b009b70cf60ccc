-- q0: every bid as it is. The yardstick: reading, parsing, logging and keeping rows, and nothing else.
CREATE MATERIALIZED VIEW q0 AS
SELECT auction, bidder, price, date_time, extra FROM bid;
