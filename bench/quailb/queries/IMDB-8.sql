SELECT r.id AS r_id, a1.id AS a1_id, a2.id AS a2_id
FROM reviews r
JOIN aspects a1
  ON AI_FILTER(PROMPT('Does the review {0} discuss {1}?', r.review, a1.aspect))
JOIN aspects a2
  ON AI_FILTER(PROMPT('Is the review {0} positive about {1}?', r.review, a2.aspect));
