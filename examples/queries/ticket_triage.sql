-- Four questions on each ticket; its text is read once.
SELECT id, left(body, 60) AS ticket,
       AI_FILTER(PROMPT('Is the customer angry? {0}', body)) AS angry, is_angry,
       AI_FILTER(PROMPT('Does the customer want to cancel a contract? {0}', body)) AS cancel, wants_to_cancel,
       AI_FILTER(PROMPT('Does the customer ask for an invoice or receipt? {0}', body)) AS invoice, wants_invoice,
       AI_FILTER(PROMPT('Has the customer trouble logging in? {0}', body)) AS login, cannot_log_in
FROM 'examples/tickets.csv'
ORDER BY id;
