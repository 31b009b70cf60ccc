-- q13: every bid with a value from a small table beside the stream.
--
-- Form: an ordinary join with a table of 10,000 rows, which the view follows when it changes. The published text looks the
-- row up when the bid comes, and keeps that answer.
CREATE TABLE side_input (key BIGINT PRIMARY KEY, value TEXT);
INSERT INTO side_input SELECT n, 'value-' || n FROM generate_series(0, 9999) AS numbers (n);
CREATE MATERIALIZED VIEW q13 AS
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid AS b JOIN side_input AS s ON b.auction % 10000 = s.key;
