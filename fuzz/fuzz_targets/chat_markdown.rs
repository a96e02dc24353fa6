#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sessile_cli::fuzz::chat_markdown(bytes));
