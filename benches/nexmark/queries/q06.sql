-- q6: for each seller, the average of what the last ten auctions were sold for.
--
-- Form: one row a seller, of the ten auctions that were won last. The published text has a row per auction, each with the
-- average of a frame of ROWS BETWEEN 10 PRECEDING AND CURRENT ROW, and engines differ on what happens when a winner changes.
CREATE MATERIALIZED VIEW q6 AS
SELECT seller, avg(price) AS avg_price
FROM (
  SELECT seller, price,
    row_number() OVER (PARTITION BY seller ORDER BY date_time DESC, id DESC) AS back
  FROM (
    SELECT a.id, a.seller, b.price, b.date_time,
      row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place
    FROM auction AS a JOIN bid AS b ON a.id = b.auction
    WHERE b.date_time BETWEEN a.date_time AND a.expires
  ) AS bids WHERE place <= 1
) AS sold WHERE back <= 10
GROUP BY seller;
