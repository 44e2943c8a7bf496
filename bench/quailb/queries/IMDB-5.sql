SELECT r.id AS r_id, a.id AS a_id
FROM reviews r
JOIN aspects a
  ON AI_FILTER(PROMPT('Does the review {0} discuss {1}?', r.review, a.aspect))
WHERE AI_FILTER(PROMPT('Does the review praise something about the film? {0}', r.review))
  AND AI_FILTER(PROMPT('Does the review talk about how the film ends? {0}', r.review))
  AND AI_FILTER(PROMPT('Does the review name an actor of the film? {0}', r.review));
