-- How often does the judge agree with the stars?
SELECT verdict, is_positive AS truth, count(*) AS reviews
FROM (SELECT is_positive, AI_FILTER(PROMPT('Is the customer happy with the product? {0}', body)) AS verdict
      FROM 'examples/reviews.csv')
GROUP BY ALL
ORDER BY ALL;
