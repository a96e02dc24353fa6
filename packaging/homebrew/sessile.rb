class Sessile < Formula
  desc "State that stays put for command-line tools and agents"
  homepage "https://github.com/sessile/sessile"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_linux do
    on_intel do
      url "https://github.com/sessile/sessile/releases/download/v@VERSION@/sessile-@VERSION@-@TARGET@.tar.gz"
      sha256 "@SHA256@"
    end
  end

  # macOS builds from source, with the Keychain.
  on_macos do
    url "https://github.com/sessile/sessile.git", tag: "v@VERSION@"
    depends_on "rust" => :build
  end

  def install
    if OS.mac?
      system "cargo", "install", *std_cargo_args(path: "crates/sessile-cli")
      system bin/"sessile", "man", "--dir", man1
      generate_completions_from_executable(bin/"sessile", "completions")
    else
      bin.install "bin/sessile"
      man1.install Dir["share/man/man1/*.1"]
      bash_completion.install "share/bash-completion/completions/sessile"
      zsh_completion.install "share/zsh/vendor-completions/_sessile"
      fish_completion.install "share/fish/vendor_completions.d/sessile.fish"
    end
  end

  service do
    run [opt_bin/"sessile", "serve"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sessile --version")
    assert_match "sessile", shell_output("#{bin}/sessile completions bash")
  end
end
