#!/usr/bin/env bash
# The oracle of the changelog engine for a long time: random queries over random changes, each with every size of epochs, number of
# workers, with and without cuts, compared with the batch answer.
#   overnight.sh [SECONDS] [SEED]   3600 seconds from a seed of today unless told otherwise
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
export LAKEHEAD_EQUIVALENCE_SECONDS="${1:-3600}" LAKEHEAD_EQUIVALENCE_SEED="${2:-$(date +%Y%m%d)0000}"
cargo test --locked --lib -- --nocapture a_stream_folds_to_the_batch_answer
