SELECT tr.id
FROM agent_traces tr
WHERE AI_FILTER(PROMPT('Did the agent make a plausible fix? {0}', tr.trace));
