SELECT x.id AS x_id, g.id AS g_id
FROM citation_contexts x
JOIN citation_passages g
  ON AI_FILTER(PROMPT('Does the excerpt {0} cite the passage {1}?', x.excerpt, g.passage));
