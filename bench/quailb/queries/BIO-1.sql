SELECT rep.id
FROM reports rep
WHERE AI_FILTER(PROMPT('Was the adverse event serious or life-threatening? {0}', rep.report));
