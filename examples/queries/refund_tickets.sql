-- Tickets that ask for money back.
SELECT id, body, wants_refund AS truth
FROM 'examples/tickets.csv'
WHERE AI_FILTER(PROMPT('Does the customer want a refund? {0}', body))
ORDER BY id;
