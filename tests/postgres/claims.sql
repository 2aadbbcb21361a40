-- Members and their insurance claims, as the tutorial of claims has them: 1000 claims, so that the next one is 1001, of 500 members in
-- 4 companies, about 7 kinds of animals, so 28 groups.
CREATE SCHEMA claims;
SET search_path = claims;

CREATE TABLE members (
  id serial PRIMARY KEY,
  first_name varchar(50) NOT NULL,
  last_name varchar(50) NOT NULL,
  address varchar(50),
  address_city varchar(10),
  address_country varchar(10),
  insurance_company varchar(25) NOT NULL,
  insurance_number varchar(50) NOT NULL,
  ts_created varchar(20),
  ts_updated varchar(20)
);

CREATE TABLE accident_claims (
  claim_id serial PRIMARY KEY,
  claim_total float NOT NULL,
  claim_total_receipt varchar(50) NOT NULL,
  claim_currency varchar(3) NOT NULL,
  member_id int NOT NULL,
  accident_date varchar(20) NOT NULL,
  accident_type varchar(20) NOT NULL,
  accident_detail varchar(20) NOT NULL,
  claim_date varchar(20) NOT NULL,
  claim_status varchar(10) NOT NULL,
  ts_created varchar(20),
  ts_updated varchar(20)
);
ALTER TABLE accident_claims REPLICA IDENTITY FULL;

INSERT INTO members (first_name, last_name, address, address_city, address_country, insurance_company, insurance_number, ts_created, ts_updated)
SELECT (ARRAY['Ada', 'Bea', 'Cy', 'Dov', 'Eli'])[1 + i % 5], 'Member' || i, i || ' Reef Road', (ARRAY['Cairns', 'Hobart', 'Perth'])[1 + i % 3], 'Australia',
  (ARRAY['Ace', 'Coolabah Life', 'Reef and River Mutual', 'Spinifex Insurance'])[1 + i % 4], 'N-' || 100000 + i,
  to_char(timestamp '2020-01-01' + i * interval '1 hour', 'YYYY-MM-DD HH24:MI:SS'), to_char(timestamp '2020-02-01' + i * interval '1 hour', 'YYYY-MM-DD HH24:MI:SS')
FROM generate_series(1, 500) i;

-- i % 4 gives the company (500 is a multiple of 4), i % 7 the animal: every pair occurs
INSERT INTO accident_claims (claim_total, claim_total_receipt, claim_currency, member_id, accident_date, accident_type, accident_detail, claim_date,
  claim_status, ts_created, ts_updated)
SELECT (10000 + i * 7919 % 990000) / 100.0, 'Receipt' || i || '.pdf', 'AUD', 1 + i * 37 % 500,
  to_char(timestamp '2020-01-01' + i * interval '5 hours', 'YYYY-MM-DD HH24:MI:SS'), (ARRAY['Bite', 'Sting', 'Collision'])[1 + i % 3],
  (ARRAY['Blue Ringed Octopus', 'Box Jellyfish', 'Emu', 'Drop Bear', 'Magpie', 'Tiger Snake', 'Wombat'])[1 + i % 7],
  to_char(timestamp '2020-01-08' + i * interval '5 hours', 'YYYY-MM-DD HH24:MI:SS'),
  (ARRAY['INITIAL', 'IN REVIEW', 'INITIAL', 'DENIED', 'REIMBURSED'])[1 + i / 28 % 5],
  to_char(timestamp '2020-01-09' + i * interval '5 hours', 'YYYY-MM-DD HH24:MI:SS'), NULL
FROM generate_series(1, 1000) i;
