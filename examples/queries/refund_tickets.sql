-- Tickets that ask for money back. Few do, so the threshold is stricter than 0.5 (docs/embedded-judge.md: which).
SELECT id, body, wants_refund AS truth
FROM 'examples/tickets.csv'
WHERE AI_FILTER(PROMPT('Does the customer want a refund? {0}', body), {'threshold': 0.8})
ORDER BY id;
