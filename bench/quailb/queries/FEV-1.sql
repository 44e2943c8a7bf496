SELECT c.id
FROM claims c
WHERE AI_FILTER(PROMPT('Is the claim about a person? {0}', c.claim));
