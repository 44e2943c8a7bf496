SELECT c.id AS c_id, e.id AS e_id
FROM claims c
JOIN evidence e
  ON AI_FILTER(PROMPT('Does the page {0} support the claim {1}?', e.page, c.claim));
