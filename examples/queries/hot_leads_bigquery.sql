# Which customer might buy which product? (bigquery spelling: quail -d bigquery)
SELECT c.name, p.name AS product, t.customer_id IS NOT NULL AS truth
FROM `examples/customers.csv` AS c
JOIN `examples/products.csv` AS p
  ON AI.IF((c.profile, " might buy this: ", p.description), STRUCT(0.85 AS threshold))
LEFT JOIN `examples/hot_leads_truth.csv` AS t ON t.customer_id = c.id AND t.product_id = p.id
ORDER BY c.id, p.id;
