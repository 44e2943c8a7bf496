SELECT c.id AS c_id, e1.id AS e1_id, e2.id AS e2_id
FROM claims c
JOIN evidence e1
  ON AI_FILTER(PROMPT('Does the page {0} support the claim {1}?', e1.page, c.claim))
JOIN evidence e2
  ON AI_FILTER(PROMPT('Does the page {0} refute the claim {1}?', e2.page, c.claim));
