-- Products that arrived damaged or broke. About a third of the bad reviews tell of it: the threshold is 1 less that share.
SELECT p.name, r.body, r.is_broken AS truth
FROM 'examples/reviews.csv' r
JOIN 'examples/products.csv' p ON p.id = r.product_id
WHERE r.stars <= 2
  AND AI_FILTER(PROMPT('Did the product break or arrive damaged? {0}', r.body), {'threshold': 0.65})
ORDER BY p.name, r.id;
