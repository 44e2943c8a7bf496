SELECT c.id AS c_id, e.id AS e_id
FROM claims c
JOIN evidence e
  ON AI_FILTER(PROMPT('Does the page {0} support the claim {1}?', e.page, c.claim))
WHERE AI_FILTER(PROMPT('Is the claim about a person? {0}', c.claim))
  AND AI_FILTER(PROMPT('Does the claim contain a date? {0}', c.claim))
  AND AI_FILTER(PROMPT('Is the page about a person? {0}', e.page));
