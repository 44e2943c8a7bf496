-- Four questions on each ticket; its text is read once. Each is TRUE of few tickets, so the threshold is stricter than 0.5.
SELECT id, left(body, 60) AS ticket,
       AI_FILTER(PROMPT('Is the customer angry? {0}', body), {'threshold': 0.8}) AS angry, is_angry,
       AI_FILTER(PROMPT('Does the customer want to cancel a contract? {0}', body), {'threshold': 0.8}) AS cancel, wants_to_cancel,
       AI_FILTER(PROMPT('Does the customer ask for an invoice or receipt? {0}', body), {'threshold': 0.8}) AS invoice, wants_invoice,
       AI_FILTER(PROMPT('Has the customer trouble logging in? {0}', body), {'threshold': 0.8}) AS login, cannot_log_in
FROM 'examples/tickets.csv'
ORDER BY id;
