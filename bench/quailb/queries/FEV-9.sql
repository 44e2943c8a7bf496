SELECT c1.id AS c1_id, e1.id AS e1_id, c2.id AS c2_id, e2.id AS e2_id
FROM claims c1
JOIN evidence e1
  ON AI_FILTER(PROMPT('Does the page {0} support the claim {1}?', e1.page, c1.claim))
JOIN claims c2
  ON AI_FILTER(PROMPT('Does the page {0} refute the claim {1}?', e1.page, c2.claim))
JOIN evidence e2
  ON AI_FILTER(PROMPT('Does the page {0} support the claim {1}?', e2.page, c2.claim))
WHERE AI_FILTER(PROMPT('Is the claim about a person? {0}', c1.claim))
  AND AI_FILTER(PROMPT('Is the page about a person? {0}', e1.page))
  AND AI_FILTER(PROMPT('Is the claim about a person? {0}', c2.claim))
  AND AI_FILTER(PROMPT('Is the page about a person? {0}', e2.page));
