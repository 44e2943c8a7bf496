-- Which customer might buy which product? (snowflake spelling)
-- Few of the 1,500 pairs are true, so a small model needs a stricter threshold than 0.5 (docs/embedded-judge.md: which).
SELECT c.name, p.name AS product, t.customer_id IS NOT NULL AS truth
FROM 'examples/customers.csv' c
JOIN 'examples/products.csv' p
  ON AI_FILTER(PROMPT('{0} might buy this: {1}', c.profile, p.description), {'threshold': 0.85})
LEFT JOIN 'examples/hot_leads_truth.csv' t ON t.customer_id = c.id AND t.product_id = p.id
ORDER BY c.id, p.id;
