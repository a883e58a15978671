"""A hook of PyInstaller, which runs it for programs that import widemargin."""

from PyInstaller.utils.hooks import collect_data_files

from widemargin._pyinstaller import hidden_imports

datas = collect_data_files("widemargin")
hiddenimports = hidden_imports()
