"""Scripts that complete commands and options in a shell: `widemargin completion`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction

_BASH = """\
_widemargin() {{
    local words="{commands}"
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$2"))
}}
complete -o default -F _widemargin widemargin
"""


def completion(args: Namespace) -> int:
    """Print the script for a shell: `widemargin completion`."""
    options = {name: _options(command) for name, command in _commands(args.program).items()}
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](options), end="")
    return 0


def _commands(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    actions = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    return dict(actions[0].choices)


def _options(parser: ArgumentParser) -> list[str]:
    return [name for action in parser._actions for name in action.option_strings]


def _bash(options: dict[str, list[str]]) -> str:
    cases = [f'        {name}) words="{" ".join(words)}" ;;' for name, words in options.items()]
    return _BASH.format(commands=" ".join(options), cases="\n".join(cases))


def _zsh(options: dict[str, list[str]]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(options)


def _fish(options: dict[str, list[str]]) -> str:
    lines = [f"complete -c widemargin -n __fish_use_subcommand -a '{' '.join(options)}'"]
    for name, words in options.items():
        seen = f"complete -c widemargin -n '__fish_seen_subcommand_from {name}'"
        lines += [f"{seen} {'-l ' + o[2:] if o.startswith('--') else '-s ' + o[1:]}" for o in words]
    return "\n".join(lines) + "\n"
