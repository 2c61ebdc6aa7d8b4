"""Operations by name: ranks submit them in any order, and all run them in one."""
