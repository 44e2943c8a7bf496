SELECT rep.id AS rep_id, t.id AS t_id
FROM reports rep
JOIN terms t
  ON AI_FILTER(PROMPT('Did the patient of the report {0} experience {1}?', rep.report, t.term));
