SELECT x.id AS x_id, g.id AS g_id
FROM citation_contexts x
JOIN citation_passages g
  ON AI_FILTER(PROMPT('Does the excerpt {0} cite the passage {1}?', x.excerpt, g.passage))
WHERE AI_FILTER(PROMPT('Does the excerpt say that the cited case does not apply? {0}', x.excerpt))
  AND AI_FILTER(PROMPT('Is the excerpt about a matter of procedure? {0}', x.excerpt))
  AND AI_FILTER(PROMPT('Does the passage state a general rule of law? {0}', g.passage));
