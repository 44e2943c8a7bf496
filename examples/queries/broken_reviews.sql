-- Products that arrived damaged or broke.
SELECT p.name, r.body, r.is_broken AS truth
FROM 'examples/reviews.csv' r
JOIN 'examples/products.csv' p ON p.id = r.product_id
WHERE r.stars <= 2
  AND AI_FILTER(PROMPT('Did the product break or arrive damaged? {0}', r.body))
ORDER BY p.name, r.id;
