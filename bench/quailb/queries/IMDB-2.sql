SELECT r.id AS r_id, a.id AS a_id
FROM reviews r
JOIN aspects a
  ON AI_FILTER(PROMPT('Does the review {0} discuss {1}?', r.review, a.aspect));
