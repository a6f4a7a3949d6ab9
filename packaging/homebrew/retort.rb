# Written by cmd/package from SHA256SUMS for a release. Do not edit it in the tap.
class Retort < Formula
  desc "MCP server gateway in which models write programs"
  homepage "https://github.com/{{ .Owner }}/retort"
  version "{{ .Version }}"
  license "Apache-2.0"
{{ range .Systems }}
  on_{{ .Name }} do
{{- range .Archives }}
    on_{{ .CPU }} do
      url "{{ .URL }}"
      sha256 "{{ .SHA256 }}"
    end
{{- end }}
  end
{{ end }}
  def install
    bin.install "retort"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/retort.bash" => "retort"
    zsh_completion.install "completions/retort.zsh" => "_retort"
    fish_completion.install "completions/retort.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/retort version")
  end
end
