"""``python -m robustpca.tools.demo``."""

from robustpca.tools.demo import main

if __name__ == "__main__":
    main()
