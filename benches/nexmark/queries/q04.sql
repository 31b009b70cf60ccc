-- q4: for each category, the average of what its auctions were sold for.
CREATE MATERIALIZED VIEW q4 AS
SELECT category, avg(final_price) AS avg_final
FROM (
  SELECT a.id, a.category, max(b.price) AS final_price
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.category
) AS sold
GROUP BY category;
