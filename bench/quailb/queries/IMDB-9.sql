SELECT r1.id AS r1_id, a1.id AS a1_id, r2.id AS r2_id, a2.id AS a2_id
FROM reviews r1
JOIN aspects a1
  ON AI_FILTER(PROMPT('Does the review {0} discuss {1}?', r1.review, a1.aspect))
JOIN reviews r2
  ON AI_FILTER(PROMPT('Does the review {0} discuss {1}?', r2.review, a1.aspect))
JOIN aspects a2
  ON AI_FILTER(PROMPT('Is the review {0} positive about {1}?', r2.review, a2.aspect));
