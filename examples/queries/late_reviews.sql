-- Happy customers in spite of a late delivery: two questions on one text. Few deliveries were late, so that threshold is stricter than 0.5.
SELECT id, body, is_late AND is_positive AS truth
FROM 'examples/reviews.csv'
WHERE AI_FILTER(PROMPT('Does the review say that the delivery was late? {0}', body), {'threshold': 0.8})
  AND AI_FILTER(PROMPT('Is the customer happy with the product? {0}', body))
ORDER BY id;
