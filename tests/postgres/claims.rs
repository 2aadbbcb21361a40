//! The tutorial that sums up insurance claims: both of its tables are read from Postgres in one job, and the sums are kept in the lake.
//! What the sums must be says the same query in Postgres.

use super::pipeline::Pipeline;
use crate::support::running::Running;
use crate::support::waiting::wait_until;

const MEMBERS: &str = "id INT, first_name VARCHAR(50), last_name VARCHAR(50), address VARCHAR(50), address_city VARCHAR(10),
  address_country VARCHAR(10), insurance_company VARCHAR(25), insurance_number VARCHAR(50), ts_created VARCHAR(20),
  ts_updated VARCHAR(20), PRIMARY KEY (id) NOT ENFORCED";

const CLAIMS: &str = "claim_id INT, claim_total DOUBLE, claim_total_receipt VARCHAR(50), claim_currency VARCHAR(3), member_id INT,
  accident_date VARCHAR(20), accident_type VARCHAR(20), accident_detail VARCHAR(20), claim_date VARCHAR(20),
  claim_status VARCHAR(10), ts_created VARCHAR(20), ts_updated VARCHAR(20), PRIMARY KEY (claim_id) NOT ENFORCED";

const INSERT: &str = "
CREATE TABLE lake.db.agg_insurance_costs (
  es_key STRING PRIMARY KEY NOT ENFORCED,
  insurance_company STRING,
  accident_detail STRING,
  accident_agg_cost DOUBLE
);
INSERT INTO lake.db.agg_insurance_costs
SELECT UPPER(SUBSTRING(m.insurance_company,0,4) || '_' || SUBSTRING (ac.accident_detail,0,4)) es_key,
       m.insurance_company,
       ac.accident_detail,
       SUM(ac.claim_total) member_total
FROM accident_claims ac
JOIN members m
ON ac.member_id = m.id
WHERE ac.claim_status <> 'DENIED'
GROUP BY m.insurance_company, ac.accident_detail;
";

/// The same in Postgres, whose SUBSTRING counts from 1.
const ORACLE: &str = "
SELECT upper(substring(m.insurance_company, 1, 4) || '_' || substring(ac.accident_detail, 1, 4)),
  m.insurance_company, ac.accident_detail, sum(ac.claim_total)
FROM claims.accident_claims ac JOIN claims.members m ON ac.member_id = m.id
WHERE ac.claim_status <> 'DENIED' GROUP BY 2, 3 ORDER BY 1, 3";

const SUMS: &str = "SELECT es_key, insurance_company, accident_detail, accident_agg_cost FROM lake.db.agg_insurance_costs ORDER BY es_key, accident_detail";

/// A claim of a member whose company is Coolabah Life, as the tutorial makes it.
const NEW_CLAIM: &str = "INSERT INTO claims.accident_claims (claim_total, claim_total_receipt, claim_currency, member_id, accident_date, accident_type, accident_detail, claim_date, claim_status)
VALUES (500, 'PharetraMagnaVestibulum.tiff', 'AUD', 321, '2020-08-01 06:43:03', 'Collision', '{detail}', '2020-08-10 09:39:31', 'INITIAL')";

struct Claims {
    pipeline: Pipeline,
    running: Running,
}

impl Claims {
    fn start() -> Option<Claims> {
        let pipeline = Pipeline::create()?;
        pipeline.postgres.run(include_str!("claims.sql"));
        let schema = [("schema-name", "claims")];
        let members = [("schema-name", "claims"), ("changelog-mode", "upsert")];
        let statements = [
            pipeline.source("members", MEMBERS, &members),
            pipeline.source("accident_claims", CLAIMS, &schema),
            pipeline.lake(),
            INSERT.to_owned(),
        ];
        let running = pipeline.start(&statements.concat());
        Some(Claims { pipeline, running })
    }

    fn run(&self, sql: &str) {
        self.pipeline.postgres.run(sql);
    }

    fn change(&self, detail: &str) {
        self.run(&NEW_CLAIM.replace("{detail}", detail));
    }

    /// Waits until the lake says what Postgres does; sums of DOUBLE depend a little on the order of their rows.
    #[track_caller]
    fn wait_equal(&mut self, step: &str) {
        let expected = cells(&self.pipeline.postgres.lines(ORACLE));
        wait_until(format!("{step}: the sums are those of Postgres"), || {
            let shown = self.running.shown();
            assert!(!shown.contains("[ERROR]"), "{shown}");
            let found = cells(&self.pipeline.ask(SUMS));
            let is_equal = found.len() == expected.len()
                && found.iter().zip(&expected).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-6);
            if is_equal { Ok(()) } else { Err(format!("{found:?}\n{expected:?}")) }
        });
    }

    fn sum(&self, key: &str) -> f64 {
        let query =
            format!("SELECT accident_agg_cost FROM lake.db.agg_insurance_costs WHERE es_key = '{key}'");
        self.pipeline.ask(&query).parse().unwrap_or(f64::NAN)
    }
}

/// Cuts lines into what comes before the last bar and the number behind it.
fn cells(lines: &str) -> Vec<(String, f64)> {
    let cells = |line: &str| {
        let (row, sum) = line.rsplit_once('|')?;
        Some((row.to_owned(), sum.parse().ok()?))
    };
    lines.lines().filter_map(cells).collect()
}

#[test]
fn sums_of_claims_are_those_of_postgres_after_every_change() {
    let Some(mut claims) = Claims::start() else { return };
    claims.wait_equal("the first 1000 claims");
    let keys =
        claims.pipeline.ask("SELECT COUNT(*), COUNT(DISTINCT es_key) FROM lake.db.agg_insurance_costs");
    assert_eq!(keys, "28|28");
    // SUBSTRING(x, 0, 4) has four characters.
    let (before, ace) = (claims.sum("COOL_BLUE"), claims.sum("ACE_BOX "));
    assert!(before > 0.0 && ace > 0.0, "{}", claims.pipeline.ask(SUMS));

    claims.change("Blue Ringed Octopus");
    claims.wait_equal("the claim 1001");
    assert!((claims.sum("COOL_BLUE") - before - 500.0).abs() < 1e-6);
    claims.run(
        "UPDATE claims.accident_claims SET claim_total_receipt = 'CorrectReceipt.pdf' WHERE claim_id = 1001",
    );
    claims.run("UPDATE claims.accident_claims SET claim_status = 'DENIED' WHERE claim_id = 1001");
    claims.wait_equal("a claim that is denied leaves the sum");
    assert!((claims.sum("COOL_BLUE") - before).abs() < 1e-6);
    claims.run("UPDATE claims.accident_claims SET claim_status = 'INITIAL' WHERE claim_id = 1001");
    claims.wait_equal("a claim that is not denied any more enters it");
    claims.run("DELETE FROM claims.accident_claims WHERE claim_id = 1001");
    claims.wait_equal("a claim that is gone");

    // Members are followed, too.
    claims.run("UPDATE claims.members SET insurance_company = 'Ace' WHERE id = 1 + 37 % 500");
    claims.wait_equal("a member who changes the company");
    claims.run("DELETE FROM claims.accident_claims WHERE accident_detail = 'Wombat'");
    claims.wait_equal("a group without claims vanishes");
    assert_eq!(claims.pipeline.ask("SELECT COUNT(*) FROM lake.db.agg_insurance_costs"), "24");
}

#[test]
fn a_group_that_vanishes_leaves_another_of_the_same_key() {
    let Some(mut claims) = Claims::start() else { return };
    claims.wait_equal("the first 1000 claims");
    let before = claims.sum("COOL_BOX ");
    // Two groups of one key.
    claims.change("Box Turtle");
    wait_until("the key has the sum of the group that came last", || {
        let answer = claims.pipeline.ask(SUMS);
        let rows: Vec<&str> = answer.lines().filter(|line| line.starts_with("COOL_BOX |")).collect();
        match rows.as_slice() {
            [row] if row.contains("Box Turtle") && row.ends_with("|500.0") => Ok(()),
            _ => Err(answer),
        }
    });
    claims.run("DELETE FROM claims.accident_claims WHERE accident_detail = 'Box Turtle'");
    claims.wait_equal("the other group has its key again");
    assert!((claims.sum("COOL_BOX ") - before).abs() < 1e-6);
}
