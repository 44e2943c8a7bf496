SELECT tr.id
FROM agent_traces tr
WHERE AI_FILTER(PROMPT('Did the agent recover from an approach that failed? {0}', tr.trace));
