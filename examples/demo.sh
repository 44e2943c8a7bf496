#!/usr/bin/env bash
# Two questions to the embedded model, each with its score against the truth columns of the example data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
quail=${QUAIL:-build/quail}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# show TITLE FILE: the first rows of a CSV file, as a table.
show() {
  printf '\n%s\n' "$1"
  "$quail" --format table -c "SELECT * FROM '$2' LIMIT 8"
}

# score FILE TOTAL POSITIVES: how the rows of FILE (all judged TRUE; column truth) agree with the truth.
score() {
  "$quail" --format csv -c "
    WITH found AS (SELECT count(*) AS n, count(*) FILTER (WHERE truth) AS hits FROM read_csv('$1', header = true, types = {'truth': 'BOOLEAN'}))
    SELECT format('{} of {} judged TRUE, {} of these rightly; {} of the {} true ones found; {}% of all verdicts right',
                  n, $2, hits, hits, $3, round(100.0 * ($2 - (n - hits) - ($3 - hits)) / $2, 1))
    FROM found" | tail -n 1 | tr -d '"'
}

printf 'Quail: SQL whose AI predicates a small model decides, on this computer.\n'
printf 'Model: the embedded SmolLM2-135M-Instruct with its judge adapter (models/smollm2-135m-judge). It is a\n'
printf 'weak judge: the scores below say how weak. The raw model (--adapter none) answers close to chance; for\n'
printf 'real work name a better model with -m FILE.gguf or -m FOLDER.\n'

printf '\n1. A filter: which reviews are positive?\n\n'
query="SELECT id, left(replace(body, chr(10), ' '), 70) AS review, is_positive AS truth
FROM reviews WHERE id <= 120 AND AI_FILTER(PROMPT('Is the customer happy with the product? {0}', body))"
printf '%s\n' "$query"
"$quail" -t reviews=examples/reviews.csv -c "$query" --format csv -o "$work/reviews.csv" \
  --report "$work/filter.json"
show 'Judged TRUE (the first rows), beside the truth:' "$work/reviews.csv"
positives=$("$quail" -c "SELECT count(*) FROM 'examples/reviews.csv' WHERE id <= 120 AND is_positive" | tail -n 1)
score "$work/reviews.csv" 120 "$positives"

printf '\n2. A join: which customer might buy which product? 36 x 25 pairs, each text read once.\n\n'
query="SELECT c.name, p.name AS product, t.customer_id IS NOT NULL AS truth
FROM customers c JOIN products p ON AI_FILTER(PROMPT('{0} might buy this: {1}', c.profile, p.description), {'threshold': 0.85})
LEFT JOIN truth t ON t.customer_id = c.id AND t.product_id = p.id
WHERE c.id <= 36 ORDER BY c.id, p.id"
printf '%s\n' "$query"
"$quail" -t customers=examples/customers.csv -t products=examples/products.csv \
  -t truth=examples/hot_leads_truth.csv -c "$query" --format csv -o "$work/leads.csv" \
  --report "$work/join.json"
show 'Judged TRUE (the first rows), beside the truth:' "$work/leads.csv"
leads=$("$quail" -c "SELECT count(*) FROM 'examples/hot_leads_truth.csv' WHERE customer_id <= 36" | tail -n 1)
score "$work/leads.csv" 900 "$leads"

printf '\nWhat it took:\n'
for step in filter join; do
  "$quail" --format csv -c "
    SELECT format('{}: {} asks, {} tokens run where asking each prompt alone would take {}, {} s in the model',
                  '$step', calls.asked, tokens.fresh, tokens.requested, round(seconds.model, 1))
    FROM read_json('$work/$step.json')" | tail -n 1 | tr -d '"'
done
