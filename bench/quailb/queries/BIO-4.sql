SELECT rep.id AS rep_id, n.id AS n_id, car.id AS car_id
FROM reports rep
JOIN terms n
  ON AI_FILTER(PROMPT('Did the patient of the report {0} experience {1}?', rep.report, n.term))
JOIN terms car
  ON AI_FILTER(PROMPT('Did the patient of the report {0} experience {1}?', rep.report, car.term))
WHERE AI_FILTER(PROMPT('Was the adverse event serious or life-threatening? {0}', rep.report))
  AND AI_FILTER(PROMPT('Is this reaction neurological? {0}', n.term))
  AND AI_FILTER(PROMPT('Is this reaction cardiovascular? {0}', car.term));
