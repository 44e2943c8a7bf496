SELECT 'it''s \x41\u00e9', $$raw$$, r'raw', """triple""", 1.5e-3, a:b[0], f(x):labels[0]::STRING // c
FROM `p-q.d.t` t WHERE AI.IF(STRUCT('q' AS p, t.end AS d)) /* c */; SET quail_on_error = 'fail';
EXPLAIN SELECT * EXCEPT (x) FROM t WHERE SNOWFLAKE.CORTEX.AI_FILTER(PROMPT("{t.a} {b}", x));
COPY (SELECT 1) TO 'f'; INSERT INTO x SELECT 1; CREATE TABLE y AS SELECT 2
