SELECT x.id
FROM citation_contexts x
WHERE AI_FILTER(PROMPT('Does the excerpt say that the cited case does not apply? {0}', x.excerpt));
