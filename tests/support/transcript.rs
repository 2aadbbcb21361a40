//! What a client prints, cut into blocks, one per statement, and where ours differ from Flink's on purpose.

/// A block where we differ on purpose.
pub(crate) struct Exception {
    /// The golden.
    pub(crate) file: &'static str,
    /// The number of the block in it, from 0.
    pub(crate) block: usize,
    /// What we print instead: no block, one or several.
    pub(crate) ours: &'static [&'static str],
    /// Words of the line in the README's table "differs from Flink".
    pub(crate) because: &'static str,
}

/// Cuts a transcript into blocks, one per prompt, without what follows the last statement.
pub(crate) fn blocks(transcript: &str, prompt: &str) -> Vec<String> {
    let text = format!("\n{transcript}");
    let marker = format!("\n{prompt}");
    let mut blocks: Vec<String> = text.split(marker.as_str()).skip(1).map(str::to_owned).collect();
    if let Some(last) = blocks.last_mut()
        && let Some(end) = last.find("\nShutting down the session...")
    {
        last.truncate(end);
    }
    blocks.into_iter().map(|block| masked(block.trim_end())).filter(|block| !block.is_empty()).collect()
}

/// Masks what differs from run to run.
fn masked(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let line = line.replace("Flink SQL CLI", "SQL CLI").replace("Lakehead SQL CLI", "SQL CLI");
        let line = match line.rfind('(') {
            Some(at) if line.ends_with(" seconds)") => format!("{}(<time> seconds)", &line[..at]),
            _ => line,
        };
        out.push_str(&line);
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// Puts `<job-id>` for 32 hex digits.
fn without_job_ids(line: String) -> String {
    let is_digit = |c: char| c.is_ascii_hexdigit();
    let is_id = |word: &&str| word.len() == 32 && word.chars().all(is_digit);
    match line.split(|c| !is_digit(c)).find(is_id) {
        Some(id) => line.replace(id, "<job-id>"),
        None => line,
    }
}

/// Returns what of a block is compared.
pub(crate) fn compared(block: &str, file: &str) -> String {
    // What the connector `print` writes stands in a log of Flink's; here it may come in front of any answer.
    let lines = block.lines().filter(|line| !line.starts_with("+I["));
    let block: String = lines.map(|line| without_job_ids(line.to_owned()) + "\n").collect();
    let mut lines = block.lines();
    if block.starts_with("[ERROR]") {
        return format!("{}\n{}", lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    }
    if file == "help" {
        // The commands and their order are Flink's, what is said of them is ours.
        let commands = lines.filter_map(|line| line.split_once("\t\t").map(|(command, _)| command));
        return commands.collect::<Vec<_>>().join("\n");
    }
    // Our notes and warnings stand beside Flink's answer.
    lines
        .filter(|line| !line.starts_with("[WARNING]") && !line.starts_with("note:"))
        .collect::<Vec<_>>()
        .join("\n")
        .trim_end()
        .to_owned()
}

/// Takes the echoed statement off the front of a block.
fn without_echo(block: &str, statement_lines: &[String]) -> String {
    let mut rest: Vec<&str> = block.lines().collect();
    let echoed = rest.iter().zip(statement_lines).take_while(|(a, b)| a.trim_end() == b.trim_end()).count();
    rest.drain(..echoed);
    rest.join("\n")
}

/// Cuts our transcript into blocks and takes the echoed statements off.
pub(crate) fn our_blocks(transcript: &str, script: &str) -> Vec<String> {
    let echo = |piece: &lakehead::sql::Piece| -> Vec<String> {
        let prompts = std::iter::once("").chain(std::iter::repeat("> "));
        let text = lakehead::error::redact_statement(&piece.text);
        prompts.zip(text.lines()).map(|(prompt, line)| format!("{prompt}{line}")).collect()
    };
    let echoes: Vec<Vec<String>> = lakehead::sql::split(script).iter().map(echo).collect();
    blocks(transcript, "Lakehead SQL> ")
        .iter()
        .zip(&echoes)
        .map(|(block, echo)| without_echo(block, echo))
        .collect()
}

/// Puts our blocks in the place of those in which we differ.
pub(crate) fn wanted_blocks(flinks: Vec<String>, exceptions: &[Exception], file: &str) -> Vec<String> {
    let block_count = flinks.len();
    let mut wanted: Vec<String> = Vec::new();
    for (at, block) in flinks.into_iter().enumerate() {
        match exceptions.iter().find(|exception| exception.file == file && exception.block == at) {
            Some(exception) => wanted.extend(exception.ours.iter().map(|ours| (*ours).to_owned())),
            None => wanted.push(block),
        }
    }
    // What Flink dropped at the end has no block of its own.
    let beyond =
        exceptions.iter().filter(|exception| exception.file == file && exception.block >= block_count);
    wanted.extend(beyond.flat_map(|exception| exception.ours).map(|ours| (*ours).to_owned()));
    wanted
}
