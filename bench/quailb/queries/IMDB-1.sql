SELECT r.id
FROM reviews r
WHERE AI_FILTER(PROMPT('Does the review praise something about the film? {0}', r.review));
