//! `scripts/demo.sh` shows what the README says that it shows. `BLESS=1` writes the README anew.

use std::path::Path;
use std::process::Command;

use crate::examples::check_readme;
use crate::support::postgres::PostgresServer;
use crate::support::run::masked;

#[test]
fn the_readme_shows_the_demo() {
    if PostgresServer::shared().is_none() {
        return;
    }
    let ran = Command::new("bash")
        .arg("scripts/demo.sh")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .env("LAKEHEAD_BINARY", env!("CARGO_BIN_EXE_lakehead"))
        .output()
        .unwrap();
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{shown}\n{}", String::from_utf8_lossy(&ran.stderr));
    check_readme(&[("scripts/demo.sh", &masked(&shown, None))]);
}
