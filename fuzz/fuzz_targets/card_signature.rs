#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sessile_cli::fuzz::card_signature(bytes));
